package org.example.desk;

import java.net.URI;
import java.util.List;
import java.util.Optional;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.*;

/** Takes parcels and hands them out. */
@RestController
@RequestMapping("/parcels")
public class ParcelController {

    private static final int LIMIT = 100;
    private final ParcelService service;

    public ParcelController(ParcelService service) {
        this.service = service;
    }

    @GetMapping
    public List<ParcelDto> list(@RequestParam(defaultValue = "20") int limit) {
        return service.newest(Math.min(limit, LIMIT)).stream()
            .map(parcel -> new ParcelDto(parcel.id(), parcel.street()))
            .toList();
    }

    @GetMapping("/{id}")
    public ResponseEntity<ParcelDto> one(@PathVariable long id) {
        Optional<Parcel> found = service.find(id);
        if (found.isEmpty()) {
            return ResponseEntity.notFound().build();
        }
        